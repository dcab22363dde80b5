import pytest


@pytest.fixture(params=["evidence", "evidence.warc.gz"])
def path(request, tmp_path):
    """Where evidence is written, in each of its forms."""
    return tmp_path / request.param
