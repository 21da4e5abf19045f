"""Networks in 8 bits: ranges seen on pictures, and the layers that compute with bytes."""
