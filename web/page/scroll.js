// The place where messages are read: it stays at the end while new ones come, and
// where the reader is when older ones do.

const near = 80;   // pixels from the end that count as the end
const early = 600; // from the beginning, at which older messages are read

export class Scroll {
  constructor(place, jump, older) {
    Object.assign(this, { place, jump, older, following: true });
    place.addEventListener("scroll", () => {
      this.following = place.scrollHeight - place.scrollTop - place.clientHeight < near;
      this.look();
    }, { passive: true });
    jump.firstChild.addEventListener("click", () => { this.follow(); place.focus({ preventScroll: true }); });
    new ResizeObserver(() => this.changed()).observe(place); // the field beneath grows
  }

  // changed keeps the end in sight if it was.
  changed() {
    if (this.following) this.place.scrollTop = this.place.scrollHeight;
    this.look();
  }

  follow() {
    this.following = true;
    this.changed();
  }

  // above makes a change above what is read, which stays where it is.
  above(change) {
    const fromEnd = this.place.scrollHeight - this.place.scrollTop;
    change();
    this.place.scrollTop = this.place.scrollHeight - fromEnd;
  }

  look() {
    this.jump.hidden = this.following;
    if (this.place.scrollTop < early) this.older();
  }
}
