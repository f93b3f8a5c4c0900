#include "sim/discover/nccl_elements.h"

#include "sim/discover/text_lines.h"

#include <algorithm>
#include <memory>
#include <type_traits>

#include <expat.h>

namespace foretrain {
namespace {

constexpr int kDeepest = 64;
constexpr std::size_t kMostElements = 100'000;
constexpr std::size_t kMostAttributes = 64;
constexpr std::size_t kBlock = std::size_t{1} << 20;

struct FreeParser {
  void operator()(XML_Parser parser) const { XML_ParserFree(parser); }
};

class ElementReader {
 public:
  ElementReader() : parser_(XML_ParserCreate(nullptr)) {
    XML_SetUserData(parser_.get(), this);
    XML_SetElementHandler(parser_.get(), &ElementReader::begin, &ElementReader::end);
    XML_SetStartDoctypeDeclHandler(parser_.get(), &ElementReader::doctype);
  }

  Expected<std::vector<NcclElement>> read(std::string_view text) {
    bool going = true;
    for (std::size_t at = 0; going && at <= text.size(); at += kBlock) {
      const std::string_view block = text.substr(at, kBlock);
      const bool last = at + kBlock > text.size();
      going = XML_Parse(parser_.get(),
                        block.data(),
                        static_cast<int>(block.size()),
                        last ? XML_TRUE : XML_FALSE) == XML_STATUS_OK;
    }
    if (!going && faults_.none()) {
      faults_.add(line(),
                  std::string("not XML: ") + XML_ErrorString(XML_GetErrorCode(parser_.get())),
                  "is the text whole?");
    }
    if (faults_.none() && (elements_.empty() || elements_.front().name != "system")) {
      faults_.add(1, "the outermost element is not <system>", "give NCCL's topology file");
    }
    if (!faults_.none()) {
      return refuse(faults_.take());
    }
    return std::move(elements_);
  }

 private:
  static ElementReader& self(void* user) { return *static_cast<ElementReader*>(user); }

  static void XMLCALL begin(void* user, const XML_Char* name, const XML_Char** attributes) {
    self(user).open(name, attributes);
  }
  static void XMLCALL end(void* user, const XML_Char* /*name*/) { self(user).close(); }
  static void XMLCALL doctype(void* user,
                              const XML_Char* /*name*/,
                              const XML_Char* /*system*/,
                              const XML_Char* /*public_name*/,
                              int /*internal*/) {
    self(user).stop("declares a document type", "NCCL's files have none: leave it out");
  }

  void open(const XML_Char* name, const XML_Char** attributes) {
    if (open_.size() == kDeepest) {
      stop("elements nested more than 64 levels deep", "");
      return;
    }
    if (elements_.size() == kMostElements) {
      stop("more than 100,000 elements", "");
      return;
    }
    NcclElement element;
    element.name = name;
    element.depth = static_cast<int>(open_.size());
    element.line = line();
    if (!open_.empty()) {
      element.parent = open_.back();
    }
    for (; attributes[0] != nullptr; attributes += 2) {
      if (element.attributes.size() == kMostAttributes) {
        stop("an element of more than 64 attributes", "");
        return;
      }
      element.attributes.emplace(attributes[0], attributes[1]);
    }
    open_.push_back(elements_.size());
    elements_.push_back(std::move(element));
  }

  void close() {
    if (!open_.empty()) {
      open_.pop_back();
    }
  }

  void stop(const std::string& why, const std::string& hint) {
    if (faults_.none()) {
      faults_.add(line(), why, hint);
      XML_StopParser(parser_.get(), XML_FALSE);
    }
  }

  std::int64_t line() const {
    return static_cast<std::int64_t>(XML_GetCurrentLineNumber(parser_.get()));
  }

  std::unique_ptr<std::remove_pointer_t<XML_Parser>, FreeParser> parser_;
  std::vector<NcclElement> elements_;
  std::vector<std::size_t> open_;
  LineFaults faults_;
};

}  // namespace

Expected<std::vector<NcclElement>> read_nccl_elements(std::string_view text) {
  return ElementReader().read(text);
}

}  // namespace foretrain
