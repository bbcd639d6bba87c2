"""Makes ``twistd aileron`` known to Twisted without importing the daemon."""

from twisted.application.service import ServiceMaker

aileronDaemon = ServiceMaker(
    "aileron",
    "aileron.daemon",
    "The Aileron daemon: actions of coding agents, approved by their user.",
    "aileron",
)
