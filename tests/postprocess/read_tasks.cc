// For descriptions_test.py: of each line of standard input, a description, says "taken" or why not.
#include <iostream>
#include <string>

#include <run_model/error.h>
#include <run_model/task.h>

int main() {
  for (std::string line; std::getline(std::cin, line);) {
    try {
      run_model::parse_tasks(line, "task");
      std::cout << "taken\n";
    } catch (const run_model::Error& error) {
      std::string why = error.what();
      for (char& c : why) {
        if (c == '\n') c = ' ';
      }
      std::cout << "refused: " << why << "\n";
    }
  }
  return 0;
}
