"""LogStores that come with deltaic, for stores whose own put-if-absent is missing or not what other writers use."""
