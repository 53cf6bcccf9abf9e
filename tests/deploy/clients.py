"""What the Python client, zae-limiter, makes of the table: it alone says whether a switch took effect."""

from zae_limiter import RateLimitExceeded, SyncRateLimiter
from zae_limiter.exceptions import ResourceDisabled
from zae_limiter.sync_repository import SyncRepository

# A client of its own for each question: nothing that one has cached may answer the next.


def prepare(table, url, region):
    """Writes the version record, as a deployment of the library does."""
    repository = SyncRepository(name=table, region=region, endpoint_url=url)
    repository.set_version_record(schema_version="0.10.0", lambda_version="0.17.0")
    repository.close()


def asks(table, namespace, entity, resource, amount=1):
    """`admitted`, `exceeded`, or `disabled`."""
    repository = SyncRepository.connect(namespace, stack=table, config_cache_ttl=0)
    limiter = SyncRateLimiter(repository=repository)
    try:
        with limiter.acquire(entity, resource, {"rpm": amount}):
            return "admitted"
    except ResourceDisabled:
        return "disabled"
    except RateLimitExceeded:
        return "exceeded"
    finally:
        limiter.close()
