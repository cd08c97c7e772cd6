"""A scikit-learn pipeline: restored digits, and a machine's hidden units as features.

A machine learns scikit-learn's own 8x8 digits. It restores noisy ones, and its hidden units are the features of a
classifier, which is right more often on restored digits than on noisy ones.
"""

from pathlib import Path

import numpy as np
from PIL import Image
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline

import restore
from restore import zoo
from restore.sklearn import BoltzmannMachine


def main() -> None:
    digits = load_digits()
    images = digits.data > 7
    train, test, labels, truth = train_test_split(images, digits.target, test_size=300, random_state=0)
    machine = BoltzmannMachine(n_components=100, batch_size=20, n_iter=40, random_state=0)
    model = make_pipeline(machine, LogisticRegression(max_iter=1000)).fit(train, labels)
    noisy = test ^ (np.random.default_rng(0).random(test.shape) < 0.1)
    zoo.save(Path("digits-8x8"), machine.to_prior((8, 8)), "# Digits of 8x8 pixels\n")
    restored = restore.denoise(noisy.reshape(-1, 8, 8), model="./digits-8x8", p=0.1).reshape(-1, 64)
    for name, rows in {"clean": test, "10 % flipped": noisy, "restored": restored}.items():
        print(f"{name}: {np.mean(rows != test):.2%} of the pixels wrong, {model.score(rows, truth):.1%} classified")
    rows = [row[:12].reshape(12, 8, 8) for row in (test, noisy, restored)]
    sheet = np.pad(np.concatenate([np.concatenate(list(np.pad(row, ((0, 0), (1, 1), (1, 1)))), 1) for row in rows]), 1)
    Image.fromarray(sheet).convert("L").resize((sheet.shape[1] * 5, sheet.shape[0] * 5), 0).save("scikit_learn.png")


if __name__ == "__main__":
    main()
