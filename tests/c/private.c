/* Opens the library with its symbols hidden from the process, as bindings of other languages do: private LIBRARY
 * ENVIRONMENT. It is not linked with the library, so Python's symbols are hidden as well. */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

int main(int argc, char **argv) {
    void *handle, *found;
    int (*start)(const char *, char **);
    char *error = NULL;
    if (argc != 3) return 2;
    handle = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
    found = handle ? dlsym(handle, "topoplace_start") : NULL;
    if (!found) return fprintf(stderr, "%s\n", dlerror()), 1;
    memcpy(&start, &found, sizeof start);
    if (start(argv[2], &error) != 0) return fprintf(stderr, "%s\n", error), 1;
    printf("started\n");
    return 0;
}
