def pytest_addoption(parser):
    parser.addoption(
        "--fault-table", action="store_true", help="print what each robots.txt fault came to"
    )
