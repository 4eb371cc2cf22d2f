package send

// UnknownText stands in the help of commands that send.
const UnknownText = `A row whose outcome nobody knows (the request left, no answer came that can be
believed) is unknown. The service is asked for it, and it is sent again only
when the service has said twice, --settle apart, that it does not have it.`
