from sklearn.utils.estimator_checks import parametrize_with_checks
from cobpm import CoBPM
FAILS = {}
@parametrize_with_checks([CoBPM(draws=200)], expected_failed_checks=lambda e: FAILS)
def test_checks(estimator, check):
    check(estimator)
