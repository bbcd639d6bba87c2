"""The marks of guards stand above what can be disabled, and name tests that there are."""

from __future__ import annotations

import ast
import io
from collections import Counter
from contextlib import redirect_stderr
from functools import cache

from twisted.trial.unittest import SynchronousTestCase

from tests.test_security import exists

from .__main__ import main
from .guard import (
    ATTACKS,
    DAEMONS,
    MONITORING,
    OWN_TOOLS,
    PHONE,
    PROMISES,
    PROMPTS,
    RELAY,
    ROLES,
    SIGN_IN,
    SIGNING,
    SPENDING,
    STORE,
    WAKING,
    Guard,
    find_guards,
)
from .marks import BadMark, disable, read_marks
from .trying import ROOT

_AT_LEAST = {
    "of promise 2": 19,
    "of promise 3": 16,
    "of promise 4": 10,
    "of promise 5": 15,
    "of promise 6": 8,
    RELAY: 14,
    SIGNING: 47,
    PHONE: 19,
    ROLES: 23,
    SIGN_IN: 28,
    ATTACKS: 86,
    DAEMONS: 20,
}
"""As many guards as are marked today: a mark that is lost with the code around it is missed."""

_MODULE = """
def admit(run, names):
    # guard of promise 2: a condition -> A.test_a
    if run.gated:
        # guard of promise 2: a statement -> A.test_b
        refuse(run)
    for name in (
        # guard of the relay: an element -> A.test_c
        run.name,
        *names,
    ):
        try:
            # guard against attack: a statement with a long name -> A.test_d,
            #    instead return await admit(name)
            run.keep(
                # guard of promise 2: an argument -> A.test_e, instead None
                name=name
            )
        # guard of promise 2: an except clause -> A.test_f
        except KeyError:
            continue
    return (
        run.ended
        # guard of promise 2: an operand -> A.test_g
        and run.decided
        and {
            # guard of promise 2: an entry
            "id": run.id,
            # guard of promise 2: an entry -> A.test_h
            **run.more,
        }
    )
"""


@cache
def _read_guards() -> list[Guard]:
    return find_guards(ROOT)


class MarkTests(SynchronousTestCase):
    """Marks in a module."""

    def disabled(self, what: str) -> set[str]:
        """Return the lines that the module has in addition when a guard is disabled."""
        marks = [mark for mark in read_marks(_MODULE) if mark.what == what]
        before = ast.unparse(ast.parse(_MODULE)).splitlines()
        return {line.strip() for line in ast.unparse(disable(_MODULE, marks)).splitlines() if line not in before}

    def test_disabled(self) -> None:
        """A mark above a statement or a part of one disables this alone."""
        self.assertEqual(self.disabled("a condition"), {"if False:"})
        self.assertEqual(self.disabled("a statement"), {"pass"})
        self.assertEqual(self.disabled("an element"), {"for name in (*names,):"})
        self.assertEqual(self.disabled("a statement with a long name"), {"return await admit(name)"})
        self.assertEqual(self.disabled("an argument"), {"run.keep(name=None)"})
        self.assertEqual(self.disabled("an except clause"), {"except ():"})
        self.assertEqual(self.disabled("an operand"), {"return run.ended and True and {'id': run.id, **run.more}"})
        self.assertEqual(self.disabled("an entry"), {"return run.ended and run.decided and {}"})

    def test_read(self) -> None:
        """A mark says what is kept and which test must fail; one that cannot be read is an error."""
        last = read_marks(_MODULE)[-1]
        self.assertEqual((last.keeper, last.what, last.test), ("of promise 2", "an entry", "A.test_h"))
        self.assertRaises(BadMark, read_marks, "# guard of promises 2: it -> A.test_a\nf()\n")
        self.assertRaises(BadMark, disable, source := "f(\n    # guard of the relay: it -> A\n)\n", read_marks(source))


class GuardTests(SynchronousTestCase):
    """What C{python -m tests.mutants} goes by."""

    def setUp(self) -> None:
        self.guards = _read_guards()

    def test_disabled(self) -> None:
        """Each guard that is marked can be disabled, which makes another program of each of its modules."""
        same = []
        for file in sorted({file for guard in self.guards for file in guard.files}):
            source = (ROOT / "aileron" / file).read_text(encoding="utf-8")
            marks = read_marks(source)
            before = ast.dump(ast.parse(source))
            for guard in self.guards:
                if file in guard.files:
                    disabled = disable(source, guard.select(marks))
                    compile(disabled, file, "exec")
                    same += [guard.what] if ast.dump(disabled) == before else []
        self.assertEqual(same, [])

    def test_enough(self) -> None:
        """No guard of a promise, of the relay, of signing, of the store or against an attack was lost."""
        found = Counter(guard.keeper for guard in self.guards)
        self.assertEqual(
            set(found),
            {
                *(*PROMISES, RELAY, SIGNING, SPENDING, PHONE, PROMPTS, ROLES, STORE, WAKING, OWN_TOOLS, DAEMONS),
                *(SIGN_IN, MONITORING, ATTACKS),
            },
        )
        self.assertEqual({keeper: least for keeper, least in _AT_LEAST.items() if found[keeper] < least}, {})

    def test_no_such_guard(self) -> None:
        """A word that names no guard is refused in one sentence, before anything is copied or run."""
        errors = io.StringIO()
        with redirect_stderr(errors):
            status = main(["no guard has this"])
        self.assertEqual(status, 2)
        self.assertEqual(errors.getvalue(), "No guard has 'no guard has this' in its mark or its file name.\n")

    def test_attacks(self) -> None:
        """Each guard against an attack names an attack that there is."""
        named = [guard.test for guard in self.guards if guard.keeper == ATTACKS]
        self.assertEqual([test for test in named if not exists(test.removeprefix("test_"))], [])
