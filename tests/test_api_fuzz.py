"""Made-up requests at the API, as many as the suite has time for; see `benchmarks.api_fuzz`."""

from __future__ import annotations

import pytest

pytest.importorskip("schemathesis", reason="needs the packages of requirements-dev.txt")


@pytest.mark.long
def test_sixty_made_up_requests_find_no_fault_in_the_server() -> None:
    from benchmarks.api_fuzz import fuzz

    result = fuzz(60, 3)
    assert result["server_errors"] == 0, result
    assert result["not_as_described"] == 0, result["first_failures"]
    assert result["statuses"]["200"] > 5 and result["statuses"]["400"] > 5, result
