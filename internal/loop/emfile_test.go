package loop_test

const childEnv = "SLIPSTREAM_LOOP_FEW_DESCRIPTORS"

func fewDescriptors() int { return 0 }
