"""What a candidate's host library may call: an allow-list over its undefined symbols.

It raises the bar for reward hacks (threads that work after the clock, files and sockets, direct system calls,
looking up the driver's own functions) and is no sandbox: docs/trust.md says what it cannot stop.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from cuco.testbed.build import missing_symbols
from cuco.testbed.findings import Finding

#: The runtime and communication libraries, whose calls the testbed sees one by one.
_LIBRARIES = re.compile(r"^(__)?cuda[A-Z]\w*$|^p?nccl[A-Z]\w*$")
#: The C++ runtime: operators new and delete, exceptions, containers, strings, streams on memory and the
#: console.
_CXX = re.compile(
    r"^_Z(n[wa]|d[la])[A-Za-z0-9_]*$"
    r"|^__cxa_\w+$|^__gxx_personality_v0$|^_Unwind_Resume$|^__dynamic_cast$"
    r"|^_ZT[ISV]\w+$|^_Z(St|NSt|NKSt|NSa|NSs|NSo|NSi|NKSs|Sg|Sr|SA)\w*$"
)
_CXX_REFUSED = re.compile(
    r"filebuf|[io]fstream|basic_fstream|filesystem|6thread|_M_start_thread|chrono|random_device|async"
)
_C = frozenset(
    """ abort abs atexit atof atoi atol atoll bsearch calloc div exit free getenv labs ldiv llabs malloc
    memchr memcmp memcpy memmem memmove mempcpy memrchr memset posix_memalign aligned_alloc putchar puts qsort
    rand rand_r realloc srand stpcpy strcasecmp strcat strchr strcmp strcpy strcspn strdup strerror strlen
    strncasecmp strncat strncmp strncpy strndup strnlen strpbrk strrchr strspn strstr strtod strtof strtok
    strtok_r strtol strtold strtoll strtoul strtoull fflush fprintf fputc fputs fwrite printf snprintf sprintf
    vfprintf vprintf vsnprintf vsprintf perror putc sscanf stderr stdout environ tolower toupper isalpha
    isdigit isspace __assert_fail __errno_location __stack_chk_fail __ctype_b_loc __ctype_tolower_loc
    __ctype_toupper_loc __isoc99_sscanf __isoc23_sscanf __isoc23_strtol __isoc23_strtoll __isoc23_strtoul
    __isoc23_strtoull __gmon_start__ __tls_get_addr _GLOBAL_OFFSET_TABLE_ _ITM_deregisterTMCloneTable
    _ITM_registerTMCloneTable
    """.split()
)
_FORTIFIED = re.compile(r"^__(mem|str|stp|s|sn|vs|vsn|f|vf|v)\w*_chk$|^__printf_chk$")
_MATH = re.compile(
    r"^(a?(cos|sin|tan)h?|atan2|ceil|floor|round|trunc|rint|nearbyint|l?lrint|l?lround|fabs|fmod|fmax|fmin|fma|frexp"
    r"|ldexp|modf|pow|sqrt|cbrt|hypot|exp2?|expm1|log(2|10|1p|b)?|erfc?|[lt]gamma|copysign|remainder|scalbl?n|ilogb"
    r"|nextafter|sincos)[fl]?$"
)
#: Why the most telling of the refused names are refused.
_REASONS: tuple[tuple[str, str], ...] = (
    (
        r"^(pthread_|thrd_)|6thread|clone|fork|posix_spawn|exec[vl]|system$|popen$",
        "starts threads or processes",
    ),
    (r"^dl(open|sym|vsym|info|addr|iterate)", "looks up functions of the process"),
    (r"^(syscall|ptrace|prctl|process_vm_)", "calls the kernel directly"),
    (
        r"^(f?open|creat|p?read|p?write|readv|writev|dup|fcntl|ioctl|stat|unlink|rename|close)",
        "reaches files",
    ),
    (r"^(mmap|munmap|mprotect|memfd|pipe|select|poll|epoll)", "reaches descriptors or memory mappings"),
    (r"filebuf|fstream|filesystem", "reaches files"),
    (r"^(socket|connect|bind|listen|accept|send|recv|getaddrinfo)", "reaches the network"),
    (r"^(clock|time$|gettimeofday|nanosleep|usleep|sleep)|chrono", "reads a clock or sleeps"),
    (r"^(_exit|_Exit|quick_exit|kill|raise|signal|sigaction)", "ends processes or handles signals"),
)


def check_imports(undefined: Iterable[str]) -> list[Finding]:
    """A finding per symbol that is not on the allow-list, in alphabetical order."""
    return [_refusal(name) for name in sorted(undefined) if not is_allowed(name)]


def check_functions(undefined: Iterable[str], runner: Path) -> list[Finding]:
    """A finding per function of CUDA or NCCL that the emulator lacks: the candidate cannot be loaded."""
    message = "the candidate calls {}, which the emulator does not have"
    return [
        Finding("unsupported", "missing-function", message.format(name))
        for name in missing_symbols(undefined, runner)
    ]


def is_allowed(name: str) -> bool:
    """Whether a candidate's host code may call or refer to this symbol."""
    if name in _C or _MATH.match(name) or _FORTIFIED.match(name) or _LIBRARIES.match(name):
        return True
    return bool(_CXX.match(name)) and not _CXX_REFUSED.search(name)


def _refusal(name: str) -> Finding:
    reason = next(
        (text for pattern, text in _REASONS if re.search(pattern, name)), "is not on the allow-list"
    )
    return Finding("tampering", "import", f"the candidate's host code uses '{name}', which {reason}")
