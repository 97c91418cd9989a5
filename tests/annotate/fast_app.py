"""The rating app without its limits on speed: fifty people in half a minute.

python fast_app.py STUDY PORT [DATABASE]
"""

import sys
from pathlib import Path

from palate.annotate.app import application
from palate.annotate.characters import Characters
from palate.annotate.database import open_database
from palate.annotate.guard import Rate, Rates
from palate.annotate.serve import listening, serve
from palate.config import load_study
from palate.models.pool import Models

if __name__ == "__main__":
    study = load_study(Path(sys.argv[1]))
    url = sys.argv[3] if len(sys.argv) > 3 else None
    database = open_database(study.folder, url, study=study.content.study.name)
    models = Models(study.content.endpoints, study_dir=study.folder)
    free = Rate(1e9, 1e9)
    app = application(
        database,
        Characters(study, models),
        rates=Rates(actions=free, replies=free),
        on_close=models.close,
    )
    listens = listening("127.0.0.1", int(sys.argv[2]))
    print(listens.getsockname()[1], flush=True)
    serve(app, listens)
