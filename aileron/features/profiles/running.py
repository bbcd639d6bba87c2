"""Profiles as the daemon applies them."""

from __future__ import annotations

from attrs import evolve, frozen

from aileron.features.core import Core
from aileron.features.feature import RunningFeature
from aileron.model.actions import Offer
from aileron.model.errors import InvalidRequest
from aileron.model.sessions import Session

from .values import ProfileSettings, selects


@frozen(eq=False)
class ProfileFilter:
    """The filter that applies the operator's profiles and the projects' selections to sessions.

    :ivar settings: the operator's profiles.
    """

    settings: ProfileSettings

    def open(self, session: Session) -> Session:
        """Return the session with the profile that it names, or else the default profile of its agent and directory.

        :raises InvalidRequest: if there is no profile of this name.
        """
        if not session.profile:
            default = self.settings.find_default(session.agent, session.working_dir)
            return session if default is None else evolve(session, profile=default.name)
        if session.profile not in self.settings.profiles:
            names = ", ".join(self.settings.profiles) or "config.yaml has none"
            raise InvalidRequest.listing(
                f"There is no profile {session.profile}.", ("/profile", f"must be a profile: {names}")
            )
        return session

    def allows(self, session: Session, offer: Offer) -> bool:
        """Return whether the session's profile and its selection both allow the action.

        A profile that config.yaml no longer has allows nothing.
        """
        if session.selection is not None and not selects(session.selection, offer):
            return False
        if not session.profile:
            return True
        profile = self.settings.find(session.profile)
        # guard of promise 2: a session whose profile is gone may use nothing -> ProfileTests.test_gone
        if profile is None:
            return False
        return selects(profile.selection, offer)


@frozen(eq=False)
class RunningProfiles(RunningFeature):
    """The running feature: it restricts sessions to the actions of their profiles.

    :ivar settings: the operator's profiles.
    """

    settings: ProfileSettings

    @property
    def parts(self) -> tuple[object, ...]:  # type: ignore[override]
        """The objects that routes and pages can find by their class: this feature."""
        return (self,)


def start_profiles(core: Core) -> RunningProfiles:
    """Start applying the profiles of config.yaml."""
    settings = core.settings.get("profiles") or ProfileSettings()
    filters = core.runner.submission.filters
    filters.add(ProfileFilter(settings))
    return RunningProfiles(settings)
