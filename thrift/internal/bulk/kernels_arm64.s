//go:build !purego

#include "textflag.h"

// All functions obey ABI0: arguments and results on the stack, all registers used here free to
// use. They have no frame, call nothing and leave the stack alone. Loops process 64 bytes, then 16.
// The bytes that remain at the end are the last of a block of 16 that ends where the list ends: it
// overlaps what has been converted already, and writes the same there once more. No access is
// therefore outside of the list.

// func swap16NEON(dst, src *byte, n int)
TEXT ·swap16NEON(SB), NOSPLIT, $0-24
	MOVD dst+0(FP), R0                                // R0: where the next block goes
	MOVD src+8(FP), R1                                // R1: where the next block comes from
	MOVD n+16(FP), R2                                 // R2: bytes that remain
	ADD  R2, R0, R3                                   // R3: the end of the destination
	ADD  R2, R1, R4                                   // R4: the end of the source
	SUBS $64, R2, R2                                  // R2: bytes that remain after a block of 64
	BLO  swap1664done                                 // there is no such block

swap1664:
	VLD1.P 64(R1), [V0.B16, V1.B16, V2.B16, V3.B16]   // load 64 bytes and go to the next block
	VREV16 V0.B16, V0.B16                             // reverse each 2 bytes
	VREV16 V1.B16, V1.B16
	VREV16 V2.B16, V2.B16
	VREV16 V3.B16, V3.B16
	VST1.P [V0.B16, V1.B16, V2.B16, V3.B16], 64(R0)   // store them and go to the next block
	SUBS $64, R2, R2                                  // is there another one?
	BHS  swap1664                                     // yes, if that did not borrow

swap1664done:
	ADDS $48, R2, R2                                  // R2: bytes that remain after a block of 16; it was 64 too small
	BLO  swap1616done                                 // no carry, so the sum is negative: there is no such block

swap1616:
	VLD1.P 16(R1), [V0.B16]                           // load 16 bytes and go to the next block
	VREV16 V0.B16, V0.B16                             // reverse each 2 bytes
	VST1.P [V0.B16], 16(R0)                           // store them and go to the next block
	SUBS $16, R2, R2                                  // is there another one?
	BHS  swap1616                                     // yes, if that did not borrow

swap1616done:
	ADDS $16, R2, R2                                  // R2: bytes that remain
	BEQ  swap16done                                   // none
	SUB  $16, R3, R3                                  // R3: where the last 16 bytes go
	SUB  $16, R4, R4                                  // R4: where the last 16 bytes come from
	VLD1 (R4), [V0.B16]                               // convert them
	VREV16 V0.B16, V0.B16
	VST1 [V0.B16], (R3)

swap16done:
	RET

// func swap32NEON(dst, src *byte, n int)
TEXT ·swap32NEON(SB), NOSPLIT, $0-24
	MOVD dst+0(FP), R0                                // R0: where the next block goes
	MOVD src+8(FP), R1                                // R1: where the next block comes from
	MOVD n+16(FP), R2                                 // R2: bytes that remain
	ADD  R2, R0, R3                                   // R3: the end of the destination
	ADD  R2, R1, R4                                   // R4: the end of the source
	SUBS $64, R2, R2                                  // R2: bytes that remain after a block of 64
	BLO  swap3264done                                 // there is no such block

swap3264:
	VLD1.P 64(R1), [V0.B16, V1.B16, V2.B16, V3.B16]   // load 64 bytes and go to the next block
	VREV32 V0.B16, V0.B16                             // reverse each 4 bytes
	VREV32 V1.B16, V1.B16
	VREV32 V2.B16, V2.B16
	VREV32 V3.B16, V3.B16
	VST1.P [V0.B16, V1.B16, V2.B16, V3.B16], 64(R0)   // store them and go to the next block
	SUBS $64, R2, R2                                  // is there another one?
	BHS  swap3264                                     // yes, if that did not borrow

swap3264done:
	ADDS $48, R2, R2                                  // R2: bytes that remain after a block of 16; it was 64 too small
	BLO  swap3216done                                 // no carry, so the sum is negative: there is no such block

swap3216:
	VLD1.P 16(R1), [V0.B16]                           // load 16 bytes and go to the next block
	VREV32 V0.B16, V0.B16                             // reverse each 4 bytes
	VST1.P [V0.B16], 16(R0)                           // store them and go to the next block
	SUBS $16, R2, R2                                  // is there another one?
	BHS  swap3216                                     // yes, if that did not borrow

swap3216done:
	ADDS $16, R2, R2                                  // R2: bytes that remain
	BEQ  swap32done                                   // none
	SUB  $16, R3, R3                                  // R3: where the last 16 bytes go
	SUB  $16, R4, R4                                  // R4: where the last 16 bytes come from
	VLD1 (R4), [V0.B16]                               // convert them
	VREV32 V0.B16, V0.B16
	VST1 [V0.B16], (R3)

swap32done:
	RET

// func swap64NEON(dst, src *byte, n int)
TEXT ·swap64NEON(SB), NOSPLIT, $0-24
	MOVD dst+0(FP), R0                                // R0: where the next block goes
	MOVD src+8(FP), R1                                // R1: where the next block comes from
	MOVD n+16(FP), R2                                 // R2: bytes that remain
	ADD  R2, R0, R3                                   // R3: the end of the destination
	ADD  R2, R1, R4                                   // R4: the end of the source
	SUBS $64, R2, R2                                  // R2: bytes that remain after a block of 64
	BLO  swap6464done                                 // there is no such block

swap6464:
	VLD1.P 64(R1), [V0.B16, V1.B16, V2.B16, V3.B16]   // load 64 bytes and go to the next block
	VREV64 V0.B16, V0.B16                             // reverse each 8 bytes
	VREV64 V1.B16, V1.B16
	VREV64 V2.B16, V2.B16
	VREV64 V3.B16, V3.B16
	VST1.P [V0.B16, V1.B16, V2.B16, V3.B16], 64(R0)   // store them and go to the next block
	SUBS $64, R2, R2                                  // is there another one?
	BHS  swap6464                                     // yes, if that did not borrow

swap6464done:
	ADDS $48, R2, R2                                  // R2: bytes that remain after a block of 16; it was 64 too small
	BLO  swap6416done                                 // no carry, so the sum is negative: there is no such block

swap6416:
	VLD1.P 16(R1), [V0.B16]                           // load 16 bytes and go to the next block
	VREV64 V0.B16, V0.B16                             // reverse each 8 bytes
	VST1.P [V0.B16], 16(R0)                           // store them and go to the next block
	SUBS $16, R2, R2                                  // is there another one?
	BHS  swap6416                                     // yes, if that did not borrow

swap6416done:
	ADDS $16, R2, R2                                  // R2: bytes that remain
	BEQ  swap64done                                   // none
	SUB  $16, R3, R3                                  // R3: where the last 16 bytes go
	SUB  $16, R4, R4                                  // R4: where the last 16 bytes come from
	VLD1 (R4), [V0.B16]                               // convert them
	VREV64 V0.B16, V0.B16
	VST1 [V0.B16], (R3)

swap64done:
	RET

// func boolsNEON(dst, src *byte, n int)
TEXT ·boolsNEON(SB), NOSPLIT, $0-24
	MOVD dst+0(FP), R0                                // R0: where the next block goes
	MOVD src+8(FP), R1                                // R1: where the next block comes from
	MOVD n+16(FP), R2                                 // R2: bytes that remain
	VMOVI $1, V4.B16                                  // V4: 1 in each byte
	VMOVI $0, V5.B16                                  // V5: 0 in each byte
	ADD  R2, R0, R3                                   // R3: the end of the destination
	ADD  R2, R1, R4                                   // R4: the end of the source
	SUBS $64, R2, R2                                  // R2: bytes that remain after a block of 64
	BLO  bools64done                                  // there is no such block

bools64:
	VLD1.P 64(R1), [V0.B16, V1.B16, V2.B16, V3.B16]   // load 64 bytes and go to the next block
	VCMEQ V5.B16, V0.B16, V0.B16                      // -1 where a byte is 0, and 0 elsewhere
	VADD V4.B16, V0.B16, V0.B16                       // 0 where a byte is 0, and 1 elsewhere
	VCMEQ V5.B16, V1.B16, V1.B16
	VADD V4.B16, V1.B16, V1.B16
	VCMEQ V5.B16, V2.B16, V2.B16
	VADD V4.B16, V2.B16, V2.B16
	VCMEQ V5.B16, V3.B16, V3.B16
	VADD V4.B16, V3.B16, V3.B16
	VST1.P [V0.B16, V1.B16, V2.B16, V3.B16], 64(R0)   // store them and go to the next block
	SUBS $64, R2, R2                                  // is there another one?
	BHS  bools64                                      // yes, if that did not borrow

bools64done:
	ADDS $48, R2, R2                                  // R2: bytes that remain after a block of 16; it was 64 too small
	BLO  bools16done                                  // no carry, so the sum is negative: there is no such block

bools16:
	VLD1.P 16(R1), [V0.B16]                           // load 16 bytes and go to the next block
	VCMEQ V5.B16, V0.B16, V0.B16                      // -1 where a byte is 0, and 0 elsewhere
	VADD V4.B16, V0.B16, V0.B16                       // 0 where a byte is 0, and 1 elsewhere
	VST1.P [V0.B16], 16(R0)                           // store them and go to the next block
	SUBS $16, R2, R2                                  // is there another one?
	BHS  bools16                                      // yes, if that did not borrow

bools16done:
	ADDS $16, R2, R2                                  // R2: bytes that remain
	BEQ  boolsdone                                    // none
	SUB  $16, R3, R3                                  // R3: where the last 16 bytes go
	SUB  $16, R4, R4                                  // R4: where the last 16 bytes come from
	VLD1 (R4), [V0.B16]                               // convert them
	VCMEQ V5.B16, V0.B16, V0.B16
	VADD V4.B16, V0.B16, V0.B16
	VST1 [V0.B16], (R3)

boolsdone:
	RET
