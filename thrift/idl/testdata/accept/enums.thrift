enum Color {
  RED,
  GREEN = 5,
  BLUE
  CRIMSON = 0 ; SCARLET = 0 (alias = "yes", deprecated)
  NEGATIVE = -7,
  NEXT,
  HEX = 0x1F,
  PLUS = +3
  MAX = 2147483647
  MIN = -2147483648
} (on = "the enum")

enum Empty {}

enum Other { RED, GREEN }
