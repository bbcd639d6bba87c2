"""Letters that look like others are told, and texts in any language are left alone."""

from __future__ import annotations

import unicodedata

from hypothesis import given, settings
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from aileron.base.text import cautions, visible
from tests.extent import examples

_PROSE = (
    "Привет, это обычный текст: а, о, с и рос",
    "Обновили Kubernetes до версии 1.30, перезапустили кластер, а Terraform и Helm оставили без изменений",
    "Доброго дня, це звичайний текст про їжу; зустріч о шостій, і є новини",
    "Здравейте, срещата е утре в офиса, а отчетът е готов",
    "Састанак је сутра у подне, а извештај је већ послат са сервера",
    "Γειά σου Κόσμε, το ένα και ο άλλος, η Άννα είναι εδώ",
    "Բարև ձեզ, հանդիպումը վաղը ժամը տասին է, և օրը լավ է ու հարմար",
    "გამარჯობა, შეხვედრა ხვალ დილით გვაქვს, ყველა მოდით",
    "日本語のテキスト、Webサイトとメール。Ａ社の担当者は２名です。ＡＢＣ会議室、１２３号室、① と ②",
    "今天发布了新版本 v2，时间：12：30。请大家更新 Python。Django 不用动，二〇二四年",
    "한국어 텍스트입니다. 회의는 내일 오전 ① 회의실에서 합니다",
    "नमस्ते दुनिया १२, ज़िंदगी के १०० दिन, ० से शुरू",
    "নমস্কার, সভা কাল সকাল ৮টায়, মোট ৪০ জন আসবেন এবং ৭ জন পরে",
    "வணக்கம், கூட்டம் நாளை காலை பத்து மணிக்கு",
    "ภาษาไทย ๑๒ การประชุมพรุ่งนี้ ๑๐ โมง",
    "မင်္ဂလာပါ၊ အစည်းအဝေးကို မနက်ဖြန် ကျင်းပပါမည်၊ ဝန်ကြီး ၁၀ ဦး",
    "Tiếng Việt đẹp, đường phố Hà Nội",
    "Ma sœur a mis tout son cœur à l'œuvre, n° 2 ; c’est naïf…",
    "Kære Lærke, værsgo at købe smør på torvet og spise æbler",
    "Það er gott að vera í Reykjavík með æðardúni og þökk",
    "Straße größer als Fuß, 20 m² – „Prüfung“, 5 µm, CO₂ und 10³",
    "El 1º de mayo, la 2ª edición, ¿quién va?",
    "Zażółć gęślą jaźń, łódź i e‑mail",
    "Đuro ide đaku, čeka ćevape i žuri",
    "Işık ve yazılım: satış toplantısı yarın saat onda, lütfen katılın ve hazır olun",
    "Merhaba arkadaşlar, bu hafta yeni sürümü yayınlıyoruz. Hata düzeltmeleri ve küçük iyileştirmeler var",
    "Kullanıcı hesabı silindi, bilgi için yöneticiye yazın",
    "दुःख और अन्तःकरण, प्रायः सभी लोग आज आएँगे",
    "తెలుగులో సందేశం పంపండి, సమావేశం రేపు ఉదయం పది గంటలకు",
    "The set A∪B, p∨q, a∣b and the 3×4 matrix cost 5 ℮, see № 7 and ∞ – or 1920×1080, ™ and ℃",
    "Ёлки и ёжики уже здесь, её ещё нет; Τα νέα είναι ότι ήρθαν όλοι, και ό,τι έχω",
    "Šiandien i\u0307\u0301 eina, o rytoj ne",
    "Don’t wait – it’s 3–4 days “at most”, and 5 · 3 = 15 • done…",
)
_DISGUISED = {
    "#g\u0435neral": "general",
    "p\u0430ypal": "paypal",
    "\u0440\u0430\u0443\u0440\u0430l": "paypal",
    "\u0441\u043e\u0441\u043e": "coco",
    "send it to \u0440\u0430\u0443\u0440 now": "payp",
    "\u039fnly": "Only",
    "\uff46\uff55\uff4c\uff4c": "full",
    "\U0001d5ef\U0001d5fc\U0001d5f9\U0001d5f1": "bold",
    "\u217c\u2170nk": "link",
    "\u0131f": "if",
    "paypa\u0131": "paypai",
    "sign in to paypa\u0131 with I\u015f\u0131k": "paypai",
    "Ihr Konto bei g\u0131thub wurde ge\u00f6ffnet, bitte pr\u00fcfen Sie es f\u00fcr uns": "github",
    "\u0440\u0430\u0443\u0440\u0435 \u0436": "paype",
    "\u0440\u0430\u0443\u0440\u0435 \u0436\u0436 \u0434\u0434 \u0446\u0446": "paype",
    "\u0440\u0323\u0430\u0443\u0440\u0435": "p\u0323aype",
    "Pay \u0440\u0430\u0443\u0440\u0435 now; \u0436\u0434\u0446\u0448 \u0436\u0446\u0448\u0449 \u0434\u0448": "paype",
    "Добрый вечер, напишите об этом в канал #\u0435\u0445\u0435\u0441 сегодня": "exec",
    "Добрый вечер, напишите об этом в канал #наш-\u0435\u0445\u0435\u0441 сегодня": "exec",
    "Добрый вечер, напишите об этом @\u0441\u043e\u0440 сегодня": "cop",
    "今天发布了新版本，请大家更新到最新的版本，联系 @\uff41\uff4e\uff4e 即可": "ann",
    "evil\u3002com": "evil.com",
    "see evil\uff61com, please": "evil.com,",
    "https\uff1a\uff0f\uff0fevil.com": "https://evil.com",
    "user\uff20evil.com": "user@evil.com",
    "\uff03general": "#general",
    "/etc\uff0fpasswd": "/etc/passwd",
    "\u2215etc/passwd": "/etc/passwd",
    "my\u2212bank.com": "my-bank.com",
    "evil\u2024com": "evil.com",
    "good.com\u2044login": "good.com/login",
    "good.com\u2215login": "good.com/login",
    "http\ua789//evil.com": "http://evil.com",
    "a:b\u2216c": "a:b\\c",
    "caf\u00e9\u2215login.example": "caf\u00e9/login.example",
    "\u0436\u0436.\u0436\u0436\u2215evil": "\u0436\u0436.\u0436\u0436/evil",
    "http\u02d0//evil.com": "http://evil.com",
    "evil\ua4f8com": "evil.com",
    "a\u4e36b": "a\\b",
    "#gen\u212eral": "general",
    "paypa\u2223": "paypal",
    "\u2374\u237aypal": "paypal",
    "#g\u0451neral": "g\u00ebneral",
    "na\u0457ve": "na\u00efve",
    "r\u03ccma": "r\u00f3ma",
}


class LookalikeTests(SynchronousTestCase):
    """Words that would be read as others."""

    def test_told(self) -> None:
        """Each is told, with what it looks like and its code points."""
        for text, read in _DISGUISED.items():
            found = [each for each in cautions(text) if "looks like" in each]
            self.assertEqual(len(found), 1, text)
            self.assertIn(f"looks like “{read}”", found[0])
            word = found[0].partition("“")[2].partition("”")[0]
            self.assertIn(word, text)
            foreign = (each for each in word if not each.isascii() and not unicodedata.combining(each))
            self.assertTrue(any(f"U+{ord(each):04X} {unicodedata.name(each)}" in found[0] for each in foreign), text)

    def test_prose(self) -> None:
        """A text, short or long, in the language that its letters are of is none, whatever words of it look like."""
        short = ("", "#general \x00", "café naïve", "今天", "한국어", "ไทย", "нет", "Да", "#новости", "v2：新")
        for text in (*_PROSE, *short):
            self.assertEqual(list(cautions(text)), [], text)

    def test_right_to_left(self) -> None:
        """Text from right to left is told once, and is not plain."""
        for text in ("שלום עולם", "send 123 to مرحبا", "\u0661\u0662"):
            *_, turned = cautions(text)
            self.assertIn("right-to-left", turned)

    def test_stand_ins(self) -> None:
        """A sign by which another character is made visible is told, where the text has it itself."""
        self.assertEqual(visible("one↵two"), visible("one\ntwo"))
        for sign in visible("\n\t\x00\x1b\x7f"):
            (caution,) = cautions(f"one{sign}two")
            self.assertIn(f"the symbol {sign} itself", caution)
        self.assertEqual(list(cautions("one\ntwo → é")), [])

    def test_piled(self) -> None:
        """Marks that are piled on a letter are told: they may cover what stands around it."""
        for text in ("a\u0301\u0302\u0323", "Z" + "\u0351\u036b\u0343" * 20, "\u0e01" + "\u0e47" * 9):
            (caution,) = cautions(f"some {text} text")
            self.assertIn("stacked", caution)
        self.assertEqual(list(cautions("e\u0323\u0302 and o\u0301")), [])

    def test_hidden_dot(self) -> None:
        """A dot above an i or j, which has one, is told: nobody sees it."""
        for text in ("#fi\u0307nance", "j\u0307ohn", "#gi\u0323\u0307t", "\u0456\u0307"):
            self.assertIn("A combining dot is on an i or j", "".join(cautions(text)), text)
        self.assertEqual(list(cautions("\u0130stanbul, c\u0307, l\u0307")), [])

    def test_strange_marks(self) -> None:
        """A mark of another script on an ASCII letter is told: fonts may draw nothing."""
        for mark in "\u1039\u17d2\u0e47\u05b4\u0903\u0c02\U00011a47":
            self.assertIn("Marks of other scripts", "".join(cautions(f"#general{mark}")), ascii(mark))
        for text in ("ใช้Appได้", "10ാം", "Web\u0301", "PDF और वेब"):
            self.assertEqual(list(cautions(text)), [], text)

    def test_many(self) -> None:
        """Of many words some are told, and how many more there are."""
        told = list(cautions(" ".join(f"\u0430dmin{number}" for number in range(100))))
        self.assertEqual((len(told), told[-1]), (7, "94 more words look like other words."))

    @settings(deadline=None, max_examples=examples(200))
    @given(st.text())
    def test_anything(self, text: str) -> None:
        """Whatever comes, it is judged, and what is told of is shown in a visible form."""
        for caution in cautions(text):
            self.assertEqual(visible(caution), caution)
