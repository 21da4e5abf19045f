"""Networks in half precision: which layers of a float32 plan are float16, and their weights."""
