// Shows the number of pending requests in the title and icon, and plays a sound when it grows.

import { showCount } from "./status.js";

const SOUND = "aileron-sound";
const HERTZ = [660, 880];
const BEEP_S = 0.12;
const button = document.getElementById("sound");
const badge = document.getElementById("pending");
let known = null;

export function showWaiting(answer) {
  const told = answer?.headers.get("X-Aileron-Waiting");
  if (told === null || told === undefined) return;
  const count = Number(told);
  // Browsers allow no sound on a page before the user has clicked on it.
  if (known !== null && count > known && isOn() && navigator.userActivation.hasBeenActive) navigator.locks.request(`${SOUND}-${count}`, beep);
  known = count;
  badge.textContent = String(count);
  badge.hidden = !count;
  showCount(count);
}

export function armSound() {
  showSound();
  button.addEventListener("click", () => {
    localStorage.setItem(SOUND, isOn() ? "off" : "on");
    showSound();
    if (isOn()) beep();
  });
}

function isOn() {
  return localStorage.getItem(SOUND) !== "off";
}

function showSound() {
  button.setAttribute("aria-pressed", String(isOn()));
  button.textContent = isOn() ? "Sound on" : "Sound off";
}

// Play the sound. The caller's lock ensures that only one of several tabs plays it.
async function beep() {
  const audio = new AudioContext();
  HERTZ.forEach((hertz, index) => {
    const tone = audio.createOscillator();
    const volume = audio.createGain();
    tone.frequency.value = hertz;
    volume.gain.value = 0.08;
    tone.connect(volume).connect(audio.destination);
    tone.start(audio.currentTime + index * BEEP_S);
    tone.stop(audio.currentTime + (index + 1) * BEEP_S);
  });
  await new Promise((resolve) => { setTimeout(resolve, 1000); });
  await audio.close();
}
