// Restores a picture with a file of `restore export`, in C++.
//
//     g++ -std=c++17 -I $INCLUDE restore.cpp -L $LIB -l:libonnxruntime.so.1 -Wl,-rpath,$LIB -o restore
//     ./restore MODEL.onnx DAMAGED.pgm RESTORED.pgm [P]
//
// $INCLUDE is where onnxruntime_cxx_api.h lies, $LIB where libonnxruntime.so.1 does: both are in the archives of
// onnxruntime's releases, and in the package libonnxruntime-dev of Debian 13. P is the probability that a pixel was
// inverted; a prior that has learnt its damage has no such input.
#include <onnxruntime_cxx_api.h>

#include <fstream>
#include <iostream>
#include <map>
#include <string>
#include <vector>

// The number after a key in the JSON of the metadata.
static double number(const std::string& json, const std::string& key) {
    const std::string quoted = "\"" + key + "\":";
    return std::stod(json.substr(json.find(quoted) + quoted.size()));
}

template <typename T>
static Ort::Value tensor(T* values, size_t count, const std::vector<int64_t>& shape) {
    static const auto memory = Ort::MemoryInfo::CreateCpu(OrtArenaAllocator, OrtMemTypeDefault);
    return Ort::Value::CreateTensor<T>(memory, values, count, shape.data(), shape.size());
}

int main(int argc, char** argv) try {
    if (argc < 4) throw std::runtime_error("usage: restore MODEL.onnx DAMAGED.pgm RESTORED.pgm [P]");
    Ort::Env environment(ORT_LOGGING_LEVEL_ERROR);
    Ort::Session session(environment, argv[1], Ort::SessionOptions());
    Ort::AllocatorWithDefaultOptions allocator;

    // A binary PGM with a byte per pixel: "P5", width, height and largest grey, one white space, then the pixels.
    std::ifstream file(argv[2], std::ios::binary);
    std::string magic;
    int64_t width = 0, height = 0, most = 0;
    file >> magic >> width >> height >> most;
    if (!file || magic != "P5" || most < 1 || most > 255) throw std::runtime_error("not a binary PGM of 8 bits");
    file.get();
    std::vector<char> pixels(width * height);
    if (!file.read(pixels.data(), pixels.size())) throw std::runtime_error("the PGM is cut short");
    std::vector<float> grey;
    for (char pixel : pixels) grey.push_back(static_cast<unsigned char>(pixel) / float(most));

    // The prior's own settings; one p and one mask for all pixels, where [1, height, width] is one for each.
    const Ort::ModelMetadata about = session.GetModelMetadata();
    const std::string settings = about.LookupCustomMetadataMapAllocated("inference", allocator).get();
    int64_t max_iter = number(settings, "max_iter");
    float tol = number(settings, "tol"), damping = number(settings, "damping"), p = argc > 4 ? std::stof(argv[4]) : 0;
    bool fill = false;
    std::map<std::string, Ort::Value> known;
    known.emplace("image", tensor(grey.data(), grey.size(), {1, height, width}));
    known.emplace("p", tensor(&p, 1, {1, 1, 1}));
    known.emplace("mask", tensor(&fill, 1, {1, 1, 1}));
    known.emplace("max_iter", tensor(&max_iter, 1, {}));
    known.emplace("tol", tensor(&tol, 1, {}));
    known.emplace("damping", tensor(&damping, 1, {}));

    // A prior that has learnt its damage has neither p nor mask: give what there is.
    std::vector<std::string> names;
    for (size_t i = 0; i < session.GetInputCount(); i++)
        names.push_back(session.GetInputNameAllocated(i, allocator).get());
    std::vector<const char*> inputs;
    std::vector<Ort::Value> values;
    for (const std::string& name : names) {
        inputs.push_back(name.c_str());
        values.push_back(std::move(known.at(name)));
    }
    const char* outputs[] = {"restored", "iterations", "converged"};
    auto found = session.Run(Ort::RunOptions(), inputs.data(), values.data(), inputs.size(), outputs, 3);

    for (size_t i = 0; i < pixels.size(); i++) pixels[i] = char(found[0].GetTensorData<float>()[i] * most);
    std::ofstream target(argv[3], std::ios::binary);
    target << "P5\n" << width << " " << height << "\n" << most << "\n";
    target.write(pixels.data(), pixels.size());
    std::cout << "iterations " << found[1].GetTensorData<int64_t>()[0] << ", converged "
              << (found[2].GetTensorData<bool>()[0] ? "true" : "false") << "\n";
} catch (const std::exception& fault) {
    std::cerr << fault.what() << "\n";
    return 1;
}
