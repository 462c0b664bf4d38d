"""Notice a part of a work folder that was lost or restored from an older backup, before anybody is asked.

Parts are the database, the holders' secret, the reports and what was published. If all parts come from one backup, nothing
contradicts anything.
"""

from __future__ import annotations

import hmac

from ldptree.errors import ArtifactCorrupt
from storage.holders.secret import has_secret, other_secret, refuse_new_secret, secret_of
from storage.ledger.accounts import RELEASE
from storage.ledger.campaigns import campaigns_in
from storage.ledger.database import REMEDY, Database, check_value
from storage.ledger.schema import ANSWERS, ORIGIN
from storage.objects.object_store import sizes_of
from storage.store import Store


def check_state(store: Store) -> None:
    """Check that all that is kept of who was asked is there.

    Raises ArtifactCorrupt where it is missing, older than another part of it, or damaged.
    """
    objects = store.objects
    database = Database(objects)
    outside = database.outside()  # before the database itself, which may go on meanwhile
    database.refuse_new(outside)
    if not has_secret(objects):
        refuse_new_secret(objects, database.where if database.is_there else None)
    if not database.is_there:
        return
    with database.reading() as kept:
        database.check(kept, outside)
        secret = kept.rows(ORIGIN)[0].secret
        answers = {row.file: row.size for row in kept.rows(ANSWERS, account=RELEASE)}
    if not hmac.compare_digest(secret, check_value(secret_of(objects))):
        raise other_secret(objects)
    for campaign in campaigns_in(store):
        published = campaign.frozen()
        if published and (condition := store.condition(published.protocol)) != "present":
            raise ArtifactCorrupt(f"{objects.where(published.protocol.names[0])}: {condition}. {REMEDY}")
    there = sizes_of(objects, answers)
    for name, size in answers.items():  # of a release; those of simulations are drawn again
        if name not in there:
            raise ArtifactCorrupt(f"{objects.where(name)}: missing. {REMEDY}")
        if there[name] < size:
            raise ArtifactCorrupt(
                f"{objects.where(name)}: cut short ({there[name]:,} of {size:,} bytes). {REMEDY}"
            )
