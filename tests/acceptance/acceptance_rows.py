"""The rows of the acceptance list that no test shows, each with the reason."""

LAST_ROW = 347

LEFT = {}
NEED_NONE = (115,)
# Rows about the packages of all frameworks: each environment shows its part.
IN_EACH = (116, 126)
# Rows that are shown in the environment of another framework, by the tests of these folders.
ELSEWHERE = {
    "of_mxnet": (1, 34, 41, 60, 61, 68, 69, 113, 169, 320),
    "of_tensorflow": (80, 117, 134, 144, 145, 166, 167, 287, 288, 289, 291, 317, 318),
    "of_xgboost": (292, 293, 294, 295, 296, 297, 298),
}
