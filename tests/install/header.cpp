// header.cpp -- the public header is C++ as well, and its functions link without mangling.
#include <heddle.h>

#include <cstring>

int main() {
    hd_value nothing = {};
    return std::strcmp(hd_version(), HD_VERSION) == 0 && !hd_value_exists(nothing) ? 0 : 1;
}
