"""Of headers and parameters that some framework reads as another method, path or part."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from aileron.base.addresses import (
    is_overriding_header,
    is_overriding_parameter,
    is_partial_header,
    overriding_in_body,
    overriding_parameters,
)


class OverrideTests(SynchronousTestCase):
    """What makes another request of one."""

    def test_headers(self) -> None:
        """A header counts in any case, with hyphens or underscores; one that only sounds alike does not."""
        for name in ("X-HTTP-Method-Override", "x_http_method", "X-ORIGINAL-URL", "X-Rewrite_Url", "Forwarded"):
            self.assertTrue(is_overriding_header(name), name)
        for name in ("X-Request-Method-Name", "X-Callback-Url", "Origin", "Accept"):
            self.assertFalse(is_overriding_header(name), name)
        self.assertTrue(all(map(is_partial_header, ("Range", "if_range", "X-MS-Range"))))
        self.assertFalse(is_partial_header("Accept-Ranges"))

    def test_parameters(self) -> None:
        """A parameter counts however a framework cuts its name; C{method} only with the name of one."""
        for name in ("_method", "_METHOD", ".method", " _method", "_method[]", "x-http-method-override", "$httpMethod"):
            self.assertTrue(is_overriding_parameter(name, "delete"), name)
            self.assertTrue(is_overriding_parameter(name), name)
        self.assertTrue(is_overriding_parameter("method", " delete"))
        for name, value in (("method", "flickr.photos.search"), ("payment_method", "DELETE"), ("methods", "PUT")):
            self.assertFalse(is_overriding_parameter(name, value), name)
        self.assertEqual([*overriding_parameters("a=_method&_method=x;b=1;%5Fmethod=y")], ["_method", "_method"])

    def test_bodies(self) -> None:
        """A body counts with a field of such a name, and not with a text that has the word in it."""
        for body in (
            b"_method=PUT",
            b'{"_method":1}',
            b"a&x_http_method=PUT",
            b"a&method=delete",
            b'name="_method"',
            b'"\\u005fmethod":',
        ):
            self.assertTrue(overriding_in_body(body), body)
        for body in (b"payment_method=card", b"the method of it", b"a.method()", b'{"method": "tools/list"}'):
            self.assertEqual(overriding_in_body(body), "", body)
