"""What watches over deployments while nobody looks: a run that vanished is marked, a failure stops its schedule, and somebody is
told. Kept by the Prefect server as automations; they know our runs by the tag of our deployments.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import httpx
from prefect.blocks.notifications import CustomWebhookNotificationBlock
from prefect.client.orchestration import get_client
from prefect.client.schemas.filters import DeploymentFilter, DeploymentFilterTags
from prefect.events.schemas.automations import AutomationCore
from prefect.exceptions import PrefectException
from prefect.runtime import deployment, flow_run

from ldptree.errors import ConfigError, LdptreeError

if TYPE_CHECKING:
    from prefect.client.orchestration import SyncPrefectClient

TAG = "ldptree"
SCHEDULED = "auto-scheduled"
"""Prefect's own tag of runs that a schedule made: whoever starts one by hand sees it fail."""
PAUSING = "ldptree-failed-run"
BLOCK = "ldptree-failures"
HEARTBEATS_LOST_SECONDS = 600
"""Heartbeats come every 180 s: three may be lost."""
SAME_STATE_SECONDS = 60
"""Prefect may look at one event twice: in this time a run's state is told once."""
FAILED = ["prefect.flow-run.Failed", "prefect.flow-run.Crashed"]
MESSAGE = (
    "{{ flow_run.name }} of {{ deployment.name }} is {{ flow_run.state.name }}. Its log in the Prefect UI says why"
    "{% if flow_run|ui_url %}: {{ flow_run|ui_url }}{% else %}.{% endif %}"
)
"""The reason itself stays on the server: who keeps the webhook's messages is not known."""


def create_automations(webhook: str | None) -> Iterator[str]:
    """Create the automations of the current server, or bring those that are there to this version. Gives a line for each.

    Args:
        webhook: where somebody is told: an address that takes {"text": ...}, as those of Slack and Mattermost do. One message is
            sent to it first.

    Raises:
        ConfigError: nothing is deployed yet, or nobody takes a message at the webhook; nothing was created.
        LdptreeError: the server did not take an automation.
    """
    try:
        with get_client(sync_client=True) as client:
            tagged: Any = DeploymentFilter(tags=DeploymentFilterTags(all_=[TAG]))
            if not client.read_deployments(deployment_filter=tagged, limit=1):
                raise ConfigError(
                    f'no deployment with the tag "{TAG}" is on this Prefect server. Give `prefect deploy --all` first.'
                )
            wanted = [_vanished(), _failed()]
            if webhook is not None:
                wanted.append(_notified(_keep_webhook(webhook)))
            for automation in wanted:
                yield f"{automation.name:22} {_keep(client, automation):14} {automation.description}"
    except (httpx.HTTPError, PrefectException) as fault:
        raise LdptreeError(
            f"the Prefect server did not take an automation ({type(fault).__name__})."
        ) from None


def _keep(client: SyncPrefectClient, automation: AutomationCore) -> str:
    """Create an automation, or change the one of its name."""
    known = client.read_automations_by_name(automation.name)
    if not known:
        client.create_automation(automation)
        return "created"
    client.update_automation(known[0].id, automation)
    return "there already"


def _keep_webhook(address: str) -> str:
    """Send the webhook a first message, and keep it on the server; the id under which it is known. Raises ConfigError."""
    host = urlsplit(address).hostname if address.startswith(("http://", "https://")) else None
    if not host:
        raise ConfigError("--webhook: no address that begins with http:// or https://. Nothing was created.")
    message = {"text": "{{subject}}: {{body}}"}
    block = CustomWebhookNotificationBlock(
        name=BLOCK, url=address, json_data=message, headers=None, cookies=None
    )
    try:
        block.notify("failed, crashed and late runs are reported here from now on", subject="ldptree")
    except httpx.HTTPStatusError as refused:
        raise ConfigError(
            f"--webhook: {host} answered {refused.response.status_code} to a first message. Nothing was created."
        ) from None
    except (httpx.HTTPError, httpx.InvalidURL, OSError) as fault:
        raise ConfigError(
            f"--webhook: {host} took no message ({type(fault).__name__}). Nothing was created."
        ) from None
    return str(block.save(BLOCK, overwrite=True))


def _vanished() -> AutomationCore:
    ends = [*FAILED, "prefect.flow-run.Completed", "prefect.flow-run.Cancelled"]
    return _automation(
        "ldptree-vanished-run",
        "A run without a heartbeat for ten minutes is marked Crashed.",
        {
            "posture": "Proactive",
            "after": ["prefect.flow-run.heartbeat"],
            "expect": ["prefect.flow-run.heartbeat", *ends],
            "within": HEARTBEATS_LOST_SECONDS,
        },
        {
            "type": "change-flow-run-state",
            "state": "CRASHED",
            "name": "Crashed",
            "message": "No heartbeat for ten minutes. The same run again goes on from its finished steps.",
        },
    )


def _failed() -> AutomationCore:
    return _automation(
        PAUSING,
        "After a failed or crashed run of a schedule its deployment is paused until somebody deploys again.",
        {
            "posture": "Reactive",
            "expect": FAILED,
            "within": 0,
            "match_related": [_tagged(TAG), _tagged(SCHEDULED)],
        },
        {"type": "pause-deployment", "source": "inferred"},
    )


def _notified(block: str) -> AutomationCore:
    return _automation(
        "ldptree-notification",
        "A failed, crashed or late run is told at the webhook.",
        {
            "posture": "Reactive",
            "expect": [*FAILED, "prefect.flow-run.Late"],
            "for_each": ["prefect.resource.id", "prefect.state-name"],
            "within": SAME_STATE_SECONDS,
        },
        {"type": "send-notification", "block_document_id": block, "subject": "ldptree", "body": MESSAGE},
    )


def _tagged(tag: str) -> dict[str, str]:
    """What an event is related to, where its run has a tag."""
    return {"prefect.resource.id": f"prefect.tag.{tag}", "prefect.resource.role": "tag"}


def tell_pause() -> str:
    """That the failure of the current run pauses its deployment, and what takes the pause away; "" where it does not."""
    if SCHEDULED not in flow_run.tags:
        return ""
    with suppress(httpx.HTTPError, PrefectException), get_client(sync_client=True) as client:
        if any(one.enabled for one in client.read_automations_by_name(PAUSING)):
            return (
                f"This pauses the schedule of the deployment {flow_run.flow_name}/{deployment.name}. To bring it back: "
                "`prefect deploy --all`, or its switch in the Prefect UI."
            )
    return ""


def _automation(
    name: str, description: str, trigger: dict[str, Any], action: dict[str, Any]
) -> AutomationCore:
    """What a trigger, of the events of our deployments' runs, sets off."""
    ours = {
        "type": "event",
        "match": {"prefect.resource.id": "prefect.flow-run.*"},
        "match_related": _tagged(TAG),
        "for_each": ["prefect.resource.id"],
        "threshold": 1,
    }
    return AutomationCore.model_validate(
        {
            "name": name,
            "description": description,
            "enabled": True,
            "trigger": ours | trigger,
            "actions": [action],
        }
    )
