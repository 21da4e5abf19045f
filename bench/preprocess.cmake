# Preprocessing alone, and the program that preprocess_vs_pillow runs.
add_executable(preprocess_bench preprocess_bench.cc)
target_link_libraries(preprocess_bench PRIVATE run_model::preprocess benchmark::benchmark)
target_compile_definitions(preprocess_bench PRIVATE PHOTOS="${PROJECT_SOURCE_DIR}/images")
run_model_configure_target(preprocess_bench)

add_executable(preprocess_trial preprocess_trial.cc)
target_link_libraries(preprocess_trial PRIVATE run_model::preprocess nlohmann_json::nlohmann_json)
run_model_configure_target(preprocess_trial)
