#!/usr/bin/python3
"""make_load.py --filters N --events M [--seed S] [--bytes B] [--selectivity low|mid] [--data DIR] --out DIR

Writes DIR/filters.jsonl and DIR/events.jsonl for measuring. The same arguments give the same files. With --data (a
folder of real posts, posts-*.jsonl, and topics, weibo-topics.txt) texts and topics are real; without it they come from
textbase.py."""
import argparse
import json
import os
import random
import re
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import textbase

arguments = argparse.ArgumentParser()
arguments.add_argument('--filters', type=int, default=100000)
arguments.add_argument('--events', type=int, default=20000)
arguments.add_argument('--seed', type=int, default=1)
arguments.add_argument('--bytes', type=int, default=500)
arguments.add_argument('--selectivity', choices=['low', 'mid'], default='low')
arguments.add_argument('--data')
arguments.add_argument('--out', required=True)
options = arguments.parse_args()
chance = random.Random(options.seed)
mid = options.selectivity == 'mid'


def read_texts():
    """Returns (language, text) of each post, and topics that people search for."""
    if not options.data:
        topics = [t for l, t in textbase.SENTENCES if l.startswith('zh') or l == 'ja']
        return list(textbase.SENTENCES), topics
    posts = (json.loads(line)['post']
             for name in ('tweets', 'irish', 'chinese', 'chinese', 'japanese')
             for line in open(f'{options.data}/posts-{name}.jsonl'))
    return ([(post['lang'], post['text']) for post in posts],
            open(options.data + '/weibo-topics.txt').read().split('\n')[:-1])


def read_vocabulary(texts):
    """Returns all words, the most frequent ones first."""
    counts = {}
    for _, text in texts:
        for word in re.findall(r"[^\W_]+", text.lower()):
            counts[word] = counts.get(word, 0) + 1
    return sorted(counts, key=lambda word: (-counts[word], word))


texts, topics = read_texts()
vocabulary = read_vocabulary(texts)


def rare():
    letters = 'abcdefghijklmnopqrstuvwxyz'
    return ''.join(chance.choice(letters) for _ in range(chance.randint(6, 11)))


def common():
    return vocabulary[int(len(vocabulary) * chance.random() ** 3)]


def clean(text):
    return re.sub('[,，\\s]+', ' ', text).strip()[:50] or 'x'


def topic():
    title = chance.choice(topics)
    size = chance.randint(2, 4) if mid and chance.random() < .1 else chance.randint(6, 14)
    start = chance.randrange(max(1, len(title) - size))
    return clean(title[start:start + size])


def box():
    _, _, x, y = chance.choice(textbase.CITIES)
    d = chance.choice([.01, .02, .05, .2])
    x += chance.gauss(0, 20)
    y += chance.gauss(0, 12)
    x = max(-178, min(178, x))
    y = max(-88, min(88, y))
    return '%.4f,%.4f,%.4f,%.4f' % (x - d, y - d, x + d, y + d)


def some_filter(number):
    kind = chance.random()
    member, value = 'track', None
    if kind < .45:
        value = rare()
    elif kind < .60:
        value = rare() + ' ' + clean(common())
    elif kind < .80:
        value = topic()
    elif kind < .84:
        value = '#' + rare() + ',' + topic() + ',' + rare()
    elif kind < .90:
        member = 'follow'
        value = ','.join(str(chance.randint(1, 5000000)) for _ in range(chance.randint(1, 5)))
    elif kind < .93:
        member, value = 'locations', box()
    elif kind < .97:
        member, value = 'rule', '"%s %s" -%s lang:en' % (rare(), rare(), rare())
    elif kind < .99:
        member = 'rule'
        value = '(from:%d OR url:%s.example) has:links' % (chance.randint(1, 5000000), rare())
    else:
        value = clean(common()) if mid else rare() + 'x'
    return {'id': 'f%d' % number, member: value}


def some_event(number):
    lang, text = chance.choice(texts)
    while len(text.encode()) < options.bytes:
        text += ' ' + chance.choice(texts)[1]
    text = text.encode()[:options.bytes].decode('utf8', 'ignore')
    post = {'id': str(10 ** 9 + number), 'user': {'id': str(chance.randint(1, 5000000))},
            'lang': lang, 'text': text}
    if chance.random() < .2:
        _, _, x, y = chance.choice(textbase.CITIES)
        post['geo'] = {'lon': round(x + chance.gauss(0, .2), 5),
                       'lat': round(max(-90, min(90, y + chance.gauss(0, .2))), 5)}
    return {'id': post['id'], 'type': 'post', 'post': post}


def write(name, make, count):
    with open(f'{options.out}/{name}.jsonl', 'w') as file:
        for number in range(count):
            file.write(json.dumps(make(number), ensure_ascii=False, separators=(',', ':')) + '\n')


os.makedirs(options.out, exist_ok=True)
write('filters', some_filter, options.filters)
write('events', some_event, options.events)
