#include "run_model/documents/documents.h"

namespace run_model {
namespace {

// What bash has to know of a value, in its own words.
std::string offer(const Flag& flag) {
  std::string words = flag.choices != nullptr ? std::string("compgen -W '") + flag.choices + "'"
                      : flag.kind == ValueKind::kFile   ? "compgen -f"
                      : flag.kind == ValueKind::kFolder ? "compgen -d"
                                                        : "";
  if (words.empty()) return "";
  if (!flag.list) return words + " -- \"$cur\"";
  // What stands before the last comma is given already.
  return "before=${cur%\"${cur##*,}\"}; " + words + " -P \"$before\" -- \"${cur##*,}\"";
}

std::string all_flags(const Manual& manual) {
  std::string words;
  for (const FlagGroup& group : manual.groups) {
    for (const Flag& flag : group.flags) {
      if (!flag.is_shown()) continue;
      for (const std::string& alias : flag_aliases(flag)) {
        words += flag_spelling(alias) + " ";
      }
      if (flag.words != nullptr) words += flag_spelling(flag.name) + " ";
      if (flag.negated != nullptr) words += flag_spelling("no_" + std::string(flag.name)) + " ";
    }
  }
  words.pop_back();
  return words;
}

// The cases of a flag that takes a value: "--inputs|-i)".
std::string value_cases(const Manual& manual) {
  std::string cases;
  std::string nothing;
  for (const FlagGroup& group : manual.groups) {
    for (const Flag& flag : group.flags) {
      if (flag.is_switch() || !flag.is_shown()) continue;
      std::string names = flag_spelling(flag.name);
      for (const std::string& alias : flag_aliases(flag)) {
        names += "|" + flag_spelling(alias);
      }
      const std::string words = offer(flag);
      if (words.empty()) {
        nothing += (nothing.empty() ? "" : "|") + names;
      } else {
        cases += "    " + names + ") " + words + " ;;\n";
      }
    }
  }
  return nothing.empty() ? cases : cases + "    " + nothing + ") ;;\n";
}

}  // namespace

std::string bash_completion(const Manual& manual) {
  const std::string program = manual.program;
  const std::string function = "_" + program;
  std::string text = "# bash completion for " + program + ", made from the table of its flags\n\n";
  text += "# The values that a flag takes, one a line; fails for a word that takes none.\n";
  text += function + "_values() {\n  local cur=$2 before\n  case $1 in\n" + value_cases(manual) +
          "    *) return 1 ;;\n  esac\n  return 0\n}\n\n";
  text += function + "() {\n";
  text += R"(  local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} found
  # "--flag=value" comes as three words, where = is among the characters that part words.
  if [[ $cur == = ]]; then
    cur=
  elif [[ $prev == = && COMP_CWORD -ge 2 ]]; then
    prev=${COMP_WORDS[COMP_CWORD-2]}
  fi
  COMPREPLY=()
)";
  text += "  if found=$(" + function + "_values \"$prev\" \"$cur\"); then\n";
  text += "    :\n";
  text += "  elif [[ $cur == -* ]]; then\n    found=$(compgen -W '" + all_flags(manual) +
          "' -- \"$cur\")\n";
  text += manual.arguments.empty() ? "" : "  else\n    found=$(compgen -f -- \"$cur\")\n";
  text += R"(  fi
  if [[ -n $found ]]; then
    mapfile -t COMPREPLY <<< "$found"
    # A folder gets a slash, and a name with spaces its backslashes.
    [[ $cur == -* ]] || compopt -o filenames 2> /dev/null
  fi
  return 0
}

)";
  return text + "complete -F " + function + " " + program + "\n";
}

}  // namespace run_model
