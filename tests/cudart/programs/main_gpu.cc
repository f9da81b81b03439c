// Runs a program of this folder on a real GPU, to print what its .expected file must say.
extern "C" int run(int rank, int ranks);
int main() { return run(0, 1); }
