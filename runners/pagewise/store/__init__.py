"""Many results: listing, querying by SQL, comparing two."""
