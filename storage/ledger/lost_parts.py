"""Notice a part of a work folder that was lost or restored from an older backup, before anybody is asked.

Parts are the database, the holders' secret, the reports and what was published. If all parts come from one backup, nothing
contradicts anything.
"""

from __future__ import annotations

import hmac

from storage.holders.secret import has_secret, other_secret, refuse_new_secret, secret_of
from storage.ledger.accounts import RELEASE, check_answers
from storage.ledger.campaigns import campaigns_in
from storage.ledger.database import Database, check_value, lost
from storage.ledger.schema import ANSWERS, ORIGIN
from storage.store import Store


def check_state(store: Store, *, by_digest: bool = False) -> None:
    """Check that all that is kept of who was asked is there, reports by their sizes, or all of it `by_digest`.

    Raises ArtifactCorrupt where it is missing, older than another part of it, or damaged; ConfigError where a first run is to
    keep it where it cannot.
    """
    objects = store.objects
    database = Database(objects)
    outside = database.outside()  # before the database itself, which may go on meanwhile
    database.refuse_new(outside)
    if not has_secret(objects):
        refuse_new_secret(objects)
    if not database.is_there:
        database.check_place()
        return
    with database.reading() as kept:
        database.check(kept, outside)
        secret = kept.rows(ORIGIN)[0].secret
        answers = kept.rows(ANSWERS, account=RELEASE)
        if by_digest:
            kept.check_lists()
    if not has_secret(objects):
        refuse_new_secret(objects, database.where)
    if not hmac.compare_digest(secret, check_value(secret_of(objects))):
        raise other_secret(objects)
    for campaign in campaigns_in(store):
        published = campaign.frozen()
        if published and (condition := store.condition(published.protocol)) != "present":
            raise lost(objects.where(published.protocol.names[0]), condition)
    check_answers(store, answers, by_digest=by_digest)  # those of simulations are drawn again
