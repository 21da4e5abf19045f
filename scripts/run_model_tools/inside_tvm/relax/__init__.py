"""What runs inside of a TVM that compiles Relax: the actions of --compiler relax."""
