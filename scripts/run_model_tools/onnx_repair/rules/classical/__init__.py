"""Classical machine learning, ai.onnx.ml: steps beside a network, trees, support vectors."""
