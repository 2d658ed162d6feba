# reference 0.17: hangs, because it reads past the end of the file
struct A {}
/* and no end
