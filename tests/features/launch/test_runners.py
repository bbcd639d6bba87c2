"""Commands that fetch a package and run a program of it."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from aileron.features.launch.runners import NPM, PYPI, NotInstallable, PackageRun, read_package_run
from tests.extent import examples

FILES = "@modelcontextprotocol/server-filesystem"


class PackageRunTests(SynchronousTestCase):
    """C{npx}, C{uvx} and their kin."""

    def assert_run(self, line: str, run: PackageRun) -> None:
        """The line runs this."""
        self.assertEqual(read_package_run(line.split()), run, line)

    def test_npx(self) -> None:
        """The package is named by itself, with a version, or by an option beside its program's name."""
        for options in ("", "-y ", "--yes -q ", "-y -- "):
            self.assert_run(f"/usr/bin/npx {options}{FILES} /data", PackageRun(NPM, FILES, (FILES,), "", ("/data",)))
        self.assert_run("npm exec -y thing@1.2.3", PackageRun(NPM, "thing", ("thing@1.2.3",), "", ()))
        self.assert_run("npx -y thing@^1", PackageRun(NPM, "thing", ("thing@^1",), "", ()))
        for option in ("-p a@2 -p @b/c", "--package=a@2 --package @b/c"):
            self.assert_run(f"npx {option} serve -v", PackageRun(NPM, "a", ("a@2", "@b/c"), "serve", ("-v",)))

    def test_uvx(self) -> None:
        """So is it for PyPI, whose installer asks for versions in another way."""
        self.assert_run(
            "uvx mcp-server-time", PackageRun(PYPI, "mcp-server-time", ("mcp-server-time",), "mcp-server-time", ())
        )
        self.assert_run("uvx a@1.2 --x", PackageRun(PYPI, "a", ("a==1.2",), "a", ("--x",)))
        self.assert_run("uvx a@latest", PackageRun(PYPI, "a", ("a",), "a", ()))
        self.assert_run("uv tool run a[x]>=1", PackageRun(PYPI, "a", ("a[x]>=1",), "a", ()))
        run = PackageRun(PYPI, "pkg", ("pkg==2", "more", "most"), "serve", ("--port", "1"))
        self.assert_run("uvx --from pkg==2 --with more,most serve --port 1", run)
        self.assert_run("uvx --from=pkg==2 --with=more --with most serve --port 1", run)

    def test_not_installable(self) -> None:
        """What comes from elsewhere, or is fetched in another way, is refused with a sentence."""
        for line in (
            *(
                "npx",
                "npx -y",
                "npx -c x",
                "npx -p",
                "npx github:a/b",
                "npx ./here",
                "npx https://x/y.tgz",
                "npx --node-arg x y",
            ),
            *("uvx", "uvx --from git+https://x/y z", "uvx --from ./here z", "uvx --index-url x y", "uv run server.py"),
            *("bunx a", "bun x a", "pnpm dlx a", "yarn dlx a", "pipx run a", "docker run -i image", "podman run x"),
        ):
            problem = str(self.assertRaises(NotInstallable, read_package_run, line.split()))
            self.assertTrue(problem.endswith("."), line)

    def test_own_programs(self) -> None:
        """A program that is there already is left as it is."""
        for line in ("/usr/bin/node server.js", "bun server.ts", "uv --version", "npm start", "python -m server"):
            self.assertIsNone(read_package_run(line.split()), line)

    @settings(deadline=None, max_examples=examples(200))
    @given(st.sampled_from(("npx", "uvx")), st.lists(st.text(max_size=12), max_size=6))
    def test_wild(self, program: str, arguments: list[str]) -> None:
        """Whatever the arguments, no package has a name that an installer reads as an option or a path."""
        try:
            run = read_package_run([program, *arguments])
        except NotInstallable:
            return
        assert run is not None
        for each in (run.name, *run.wanted):
            self.assertFalse(each.startswith(("-", ".", "/")), each)
