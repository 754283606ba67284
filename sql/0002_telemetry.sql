-- Reports of clients about their transfers, for whoever wants to look; no
-- part of the service needs them.

CREATE TABLE xet.telemetry (
    id           bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    received_at  timestamptz NOT NULL DEFAULT now(),
    event        text        NOT NULL,
    session_id   text,
    user_agent   text,
    metrics      jsonb
);

CREATE INDEX telemetry_received ON xet.telemetry (received_at);
