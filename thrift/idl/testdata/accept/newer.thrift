# reference 0.17: rejects, because these came later
namespace go newer

const uuid ID = "01234567-89ab-cdef-0123-456789abcdef"
const uuid BRACES = "{01234567-89AB-CDEF-0123-456789ABCDEF}"

struct Words {
  1: uuid uuid,
  2: i32 list,
  3: string namespace,
  4: bool required
  5: required i32 optional,
  6: list cpp_type "Vector" <i32> enum
  7: i32 async
}
