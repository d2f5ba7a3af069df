"""LogStores that come with deltaic, for stores without put-if-absent, or where other writers commit in
another way."""
