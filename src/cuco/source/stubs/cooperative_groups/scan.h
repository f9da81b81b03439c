// Declared in the main stub.
#pragma once
#include "../cooperative_groups.h"
