package main

// link is what is said of the connection to a server: once that it is lost, and
// once that it is there again. A nil one says nothing.
type link struct {
	server string // which, for who reads it
	say    func(format string, args ...any)
	lost   bool
}

// broken says that the server is not reached.
func (l *link) broken() {
	if l != nil && !l.lost {
		l.lost = true
		l.say("the connection to the server on %s is lost; trying again", l.server)
	}
}

// whole says that it is reached again, if it was not.
func (l *link) whole() {
	if l != nil && l.lost {
		l.lost = false
		l.say("connected again")
	}
}

// news is a channel that holds the newest value alone: whoever is late hears how
// things are, not how they were. A nil one has none.
type news chan bool

func newNews() news { return make(news, 1) }

// set takes the place of a value that nobody has heard. One goroutine at a time may
// call it.
func (n news) set(value bool) {
	select {
	case <-n:
	default:
	}
	n <- value
}
