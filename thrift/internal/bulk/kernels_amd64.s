//go:build !purego

#include "textflag.h"

// Both functions obey ABI0: arguments and results on the stack, all registers free to use. They
// have no frame, call nothing and leave the stack alone. Loops process 128 bytes, then 32. The
// bytes that remain at the end are the last of a block of 32 that ends where the list ends: it
// overlaps what has been converted already, and writes the same there once more. No access is
// therefore outside of the list.

// func shuffleAVX2(dst, src *byte, n int, order *[16]byte)
TEXT ·shuffleAVX2(SB), NOSPLIT, $0-32
	MOVQ dst+0(FP), DI            // DI: where the next block goes
	MOVQ src+8(FP), SI            // SI: where the next block comes from
	MOVQ n+16(FP), CX             // CX: bytes that remain
	MOVQ order+24(FP), AX         // AX: the order
	CMPQ CX, $32                  // fewer than 32 bytes do not fill a register
	JB   shuffle16                // 16 <= n < 32

	VBROADCASTI128 (AX), Y0       // Y0: the order, for both halves of a register
	LEAQ -32(DI)(CX*1), R8        // R8: where the last 32 bytes go
	LEAQ -32(SI)(CX*1), R9        // R9: where the last 32 bytes come from
	SUBQ $128, CX                 // CX: bytes that remain after a block of 128
	JB   shuffle128done           // there is no such block

shuffle128:
	VMOVDQU (SI), Y1              // load 128 bytes into Y1 to Y4
	VMOVDQU 32(SI), Y2
	VMOVDQU 64(SI), Y3
	VMOVDQU 96(SI), Y4
	VPSHUFB Y0, Y1, Y1            // rearrange them
	VPSHUFB Y0, Y2, Y2
	VPSHUFB Y0, Y3, Y3
	VPSHUFB Y0, Y4, Y4
	VMOVDQU Y1, (DI)              // store them
	VMOVDQU Y2, 32(DI)
	VMOVDQU Y3, 64(DI)
	VMOVDQU Y4, 96(DI)
	ADDQ $128, SI                 // go to the next block
	ADDQ $128, DI
	SUBQ $128, CX                 // is there another one?
	JAE  shuffle128               // yes, if that did not borrow

shuffle128done:
	ADDQ $96, CX                  // CX: bytes that remain after a block of 32; it was 128 too small
	JNC  shuffle32done            // the sum is negative: there is no such block

shuffle32:
	VMOVDQU (SI), Y1              // load 32 bytes
	VPSHUFB Y0, Y1, Y1            // rearrange them
	VMOVDQU Y1, (DI)              // store them
	ADDQ $32, SI                  // go to the next block
	ADDQ $32, DI
	SUBQ $32, CX                  // is there another one?
	JAE  shuffle32                // yes, if that did not borrow

shuffle32done:
	ADDQ $32, CX                  // CX: bytes that remain
	JEQ  shuffledone              // none
	VMOVDQU (R9), Y1              // the last 32 bytes
	VPSHUFB Y0, Y1, Y1
	VMOVDQU Y1, (R8)

shuffledone:
	VZEROUPPER                    // SSE instructions of the caller would be slow otherwise
	RET

shuffle16:
	VMOVDQU (AX), X0              // X0: the order
	VMOVDQU (SI), X1              // the first 16 bytes
	VMOVDQU -16(SI)(CX*1), X2     // the last 16 bytes
	VPSHUFB X0, X1, X1            // rearrange them
	VPSHUFB X0, X2, X2
	VMOVDQU X1, (DI)              // store them
	VMOVDQU X2, -16(DI)(CX*1)
	VZEROUPPER
	RET

// func boolsAVX2(dst, src *byte, n int)
TEXT ·boolsAVX2(SB), NOSPLIT, $0-24
	MOVQ dst+0(FP), DI            // DI: where the next block goes
	MOVQ src+8(FP), SI            // SI: where the next block comes from
	MOVQ n+16(FP), CX             // CX: bytes that remain
	VPCMPEQB Y0, Y0, Y0           // Y0: -1 in each byte
	VPABSB Y0, Y0                 // Y0: 1 in each byte
	VPXOR Y5, Y5, Y5              // Y5: 0 in each byte
	LEAQ -32(DI)(CX*1), R8        // R8: where the last 32 bytes go
	LEAQ -32(SI)(CX*1), R9        // R9: where the last 32 bytes come from
	SUBQ $128, CX                 // CX: bytes that remain after a block of 128
	JB   bools128done             // there is no such block

bools128:
	VPCMPEQB (SI), Y5, Y1         // -1 where a byte is 0, and 0 elsewhere
	VPCMPEQB 32(SI), Y5, Y2
	VPCMPEQB 64(SI), Y5, Y3
	VPCMPEQB 96(SI), Y5, Y4
	VPADDB Y0, Y1, Y1             // 0 where a byte is 0, and 1 elsewhere
	VPADDB Y0, Y2, Y2
	VPADDB Y0, Y3, Y3
	VPADDB Y0, Y4, Y4
	VMOVDQU Y1, (DI)              // store 128 bytes
	VMOVDQU Y2, 32(DI)
	VMOVDQU Y3, 64(DI)
	VMOVDQU Y4, 96(DI)
	ADDQ $128, SI                 // go to the next block
	ADDQ $128, DI
	SUBQ $128, CX                 // is there another one?
	JAE  bools128                 // yes, if that did not borrow

bools128done:
	ADDQ $96, CX                  // CX: bytes that remain after a block of 32; it was 128 too small
	JNC  bools32done              // the sum is negative: there is no such block

bools32:
	VPCMPEQB (SI), Y5, Y1         // -1 where a byte is 0, and 0 elsewhere
	VPADDB Y0, Y1, Y1             // 0 where a byte is 0, and 1 elsewhere
	VMOVDQU Y1, (DI)              // store 32 bytes
	ADDQ $32, SI                  // go to the next block
	ADDQ $32, DI
	SUBQ $32, CX                  // is there another one?
	JAE  bools32                  // yes, if that did not borrow

bools32done:
	ADDQ $32, CX                  // CX: bytes that remain
	JEQ  boolsdone                // none
	VPCMPEQB (R9), Y5, Y1         // the last 32 bytes
	VPADDB Y0, Y1, Y1
	VMOVDQU Y1, (R8)

boolsdone:
	VZEROUPPER                    // SSE instructions of the caller would be slow otherwise
	RET
