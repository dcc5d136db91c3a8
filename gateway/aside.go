package gateway

// aside runs f on a goroutine of its own, and waits for it. A stream is idle for
// most of its life, and a stack that has grown once stays: so what goes deep runs
// on one that is thrown away, and thousands of idle streams keep small ones. A
// panic comes back to the caller.
func aside(f func() error) error {
	var err error
	var panicked any
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() { panicked = recover() }()
		err = f()
	}()
	<-done
	if panicked != nil {
		panic(panicked)
	}
	return err
}
