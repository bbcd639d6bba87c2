"""Of connector files of the kind mail: what they say, and every fault of one."""

from __future__ import annotations

import re
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from aileron.connectors import check, read_descriptions, replay
from aileron.connectors._schema import read_file
from tests.connectors.mailhost import FILE, mail_spec

LOCAL = FILE.replace("mail.example", "127.0.0.1").replace("ada@127.0.0.1", "ada@mail.example")


class MailFileTests(SynchronousTestCase):
    """Files."""

    def faults(self, *changes: tuple[str, str]) -> list[str]:
        """What is wrong with a file that is changed so."""
        text = FILE
        for old, new in changes:
            self.assertIn(old, text)
            text = text.replace(old, new)
        return [each.message for each in read_file(text.encode("utf-8"), "mail.toml").problems]

    def test_described(self) -> None:
        """A file says where the credential may go, from whom messages are, and what can be done."""
        spec = mail_spec()
        description = spec.description
        self.assertEqual(("mail.example:465", "mail.example:993"), description.hosts)
        self.assertEqual(("smtps://mail.example:465", False), (description.base_url, description.bindable))
        self.assertEqual(
            {"send_mail", "save_draft", "search_mail", "read_mail", "list_mailboxes"}, {*description.operations}
        )
        self.assertEqual(("basic", "AUTH"), (description.credential and description.credential.kind, "AUTH"))
        self.assertEqual("ada@mail.example", spec.account.user)

    def test_sending_only(self) -> None:
        """Without an IMAP server messages can be sent, and nothing can be looked for."""
        spec = mail_spec(FILE.replace('[imap]\nhost = "mail.example"\nport = 993\n', ""))
        (sending,) = spec.description.operations.values()
        self.assertEqual(("send_mail", False), (sending.name, sending.reconcilable))

    def test_token(self) -> None:
        """An OAuth 2 credential says where it is renewed, and who logs in."""
        changed = FILE.replace('"basic"', '"oauth2"\ntoken_url = "https://login.example/token"')
        need = mail_spec(changed.replace("[mail]", '[mail]\nuser = "ada"')).description.credential
        self.assertEqual("https://login.example/token", need and need.settings["token_url"])

    def test_faults(self) -> None:
        """Each fault is reported."""
        for change, words in (
            (("port = 465", ""), "`port` is missing"),
            (("port = 465", "port = 70000"), "must be from 1 to 65535"),
            (("port = 465", 'port = 465\ntls = "none"'), "may be none only on this machine"),
            (("port = 465", 'port = 465\ntls = "maybe"'), "must be one of"),
            (("port = 465", 'port = 465\npath = "/"'), "is not a known key"),
            (('host = "mail.example"\nport = 465', 'host = "mail_x.example"\nport = 465'), "no certificate"),
            (('host = "mail.example"\nport = 465', 'host = "0x7f.1"\nport = 465'), "proper address"),
            (("Ada Example <ada@mail.example>", "Ada"), "must be an address"),
            (("Ada Example <ada@mail.example>", "Ada\\r\\nBcc: x <ada@mail.example>"), "line breaks"),
            (('"basic"', '"aws_sigv4"'), "must be one of: basic, oauth2"),
            (('"basic"', '"basic"\nheader = "X"'), "is not a known key"),
            (('kind = "mail"', 'kind = "pigeon"'), "must be one of"),
            (('kind = "mail"', 'kind = "mail"\nbase_url = { bindable = true }'), "is not a known key"),
            (("[smtp]", "[snmp]"), "`smtp` is missing"),
        ):
            self.assertTrue(any(words in each for each in self.faults(change)), (change, self.faults(change)))

    def test_this_machine(self) -> None:
        """A server without TLS is for this machine alone, and only where that is declared."""
        plain = LOCAL.replace("465", '2525\ntls = "none"')
        self.assertTrue(read_file(plain.encode(), "mail.toml").problems)
        spec = mail_spec(plain.replace("[mail]", "private_network = true\n\n[mail]"))
        self.assertEqual("smtp://127.0.0.1:2525", spec.description.base_url)

    def test_offline(self) -> None:
        """Such a file is checked and described as any other; it has no recorded answers to be replayed."""
        directory = Path(self.mktemp())
        directory.mkdir()
        path = directory / "mail.toml"
        path.write_text(FILE)
        self.assertEqual([], check(path))
        described = {each.name: inputs for each, inputs in read_descriptions(directory)}
        self.assertEqual(["mailbox", "uid"], described["local://me/mail"]["read_mail"])
        replayed = replay("local://me/mail", directory)
        assert replayed is not None
        self.assertIn("recorded answers", replayed.problems[0].message)


class PageTests(SynchronousTestCase):
    """C{doc/mail.md}."""

    def test_listing(self) -> None:
        """The file of the page is sound, and the page names every operation with its inputs."""
        page = (Path(__file__).parents[4] / "doc" / "mail.md").read_text("utf-8")
        (listing,) = re.findall(r"^```text\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
        spec = mail_spec(listing)
        for name, each in spec.operations.items():
            (row,) = [line for line in page.splitlines() if line.startswith(f"| `{name}` |")]
            if name != "save_draft":
                self.assertEqual(each.inputs, set(re.findall(r"`(\w+)`", row)) - {name})
