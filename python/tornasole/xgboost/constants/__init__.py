"""Names with a meaning."""

# Metrics that should rise, and so are no losses.
INCREASING_METRICS_REGEX = "^[^/]+-(auc|aucpr|map|ndcg|pre|accuracy)(@[^/]*)?$"
