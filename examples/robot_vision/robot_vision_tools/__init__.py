"""What the commands of the example share; with it, run_model_tools can be imported."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "scripts"))
