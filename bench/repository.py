"""What a program of this folder imports first: where the repository is.

With it, run_model_tools can be imported by any Python, and so build/venv's be found.
"""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "scripts"))
