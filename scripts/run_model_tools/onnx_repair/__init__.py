"""Any ONNX model -> an equal one of plain operators, which TVM 0.18's importer reads correctly.

repair.py is the way in.  Every shape is known once the inputs' shapes are, so that the graph is
walked once from its inputs to its outputs (walk.py): what is constant is computed, control flow and
sequences are resolved, and each operator is rewritten by what `rules` registers for it to operators
of opset 18 in forms that the importer is known to read correctly.  An operator without a rule never
reaches the importer.
"""
