# reference: rejects, because a constant cannot stand for a whole list, map or struct
include "lib/shared.thrift"
namespace go same
typedef list<string> Words
const Words MINE = shared.WORDS
const list<Words> BOTH = [MINE, ["b"], shared.WORDS]
struct Place { 1: shared.Point at = shared.ORIGIN }
