#include "run_model/check_zoo/forms.h"

namespace run_model {

FormLocation locate_form(const std::filesystem::path& zoo, const std::string& model,
                         const std::string& target, std::string_view form) {
  const std::filesystem::path folder = zoo / model / target;
  FormLocation location;
  if (form == "triple") {
    location.place = folder / "model.so";
    location.request.model = model;
    location.request.artifacts = zoo;
    location.request.target = target;
    return location;
  }
  const std::filesystem::path own = folder / "forms" / form;
  if (form == "flat") {
    location.place = own / (model + "_tvm.so");
    location.request.model = model;
    location.request.artifacts = own;
    return location;
  }
  if (form == "mod" || form == "linked") {
    location.place = own;
  } else if (form == "mlf") {
    location.place = own / "linked";
  } else {
    location.place = own / (model + (form == "single" ? ".so" : ".tar"));
  }
  location.request.artifacts = location.place;
  return location;
}

}  // namespace run_model
